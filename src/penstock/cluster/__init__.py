"""The service: REST API, dashboard, metrics and high availability. Needs the extra ``penstock[service]``."""

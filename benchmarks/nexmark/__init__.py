"""Nexmark: an auction site's persons, auctions and bids, and the queries over them."""

"""Sources: the coordinator on the driver, the source stage in the tasks, and the receive log."""

"""Time, memory and disk that an index would take, on one machine or a cluster."""

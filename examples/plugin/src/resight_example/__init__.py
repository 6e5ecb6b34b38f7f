"""An encoder and a metric for resight."""

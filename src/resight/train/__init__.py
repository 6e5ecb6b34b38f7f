"""Networks that are learnt from known pairs. What they learn is exported to files that search reads without torch."""

"""Tables and figures of papers, measured: their names and data sets in, our figures beside the published ones out."""

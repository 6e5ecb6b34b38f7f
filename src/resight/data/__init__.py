"""Images and ground truth: files and folders in, Pictures and Datasets out."""

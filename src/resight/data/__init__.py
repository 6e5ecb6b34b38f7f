"""Where images and truth come from: files and folders in, Pictures and Datasets out."""

"""Images → Descriptors: backbones give Features, descriptors turn them into rows, transforms finish the rows."""

"""Similar but different objects: by the vectors that a collection stores, or by the form of craters."""

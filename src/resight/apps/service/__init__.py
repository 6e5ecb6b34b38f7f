"""The HTTP service: collections in, an app that searches, shows, adds and reviews out. `app.create_app` is the face."""

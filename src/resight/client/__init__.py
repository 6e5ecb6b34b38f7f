"""A client of `resight serve`: `Client` and `AsyncClient`, with the words and the values of the library.

An image in any form goes in, and what a `Collection` returns comes out. Both clients run the same steps
(operations.py), which send nothing themselves: a step yields a `Call` and receives the response. The client knows the
service by its HTTP API alone and imports nothing of it.

    sync_client.py, async_client.py   what users call: searching, adding
    sync_session.py, async_session.py their connections, and the shorter operations
    operations.py, bulk_add.py        one operation in steps
    image_upload.py                   an image in any form → a file to send, or a stored id
    json_values.py                    JSON → Answer, Evidence, ImageRecord …
    transport.py                      httpx, retries, errors
"""

"""Images that clients add or change over HTTP: the service first stores them durably, then adds them in batches.

    uploads ─▶ intake ─▶ store (202) … worker ─▶ Collection.add

`store` records the accepted jobs in SQLite (`database`), `worker` carries them out, `events` streams their progress,
`maintenance` removes orphaned files and has the collection compacted (`compaction`). `write_lock` keeps the adding of
images and their deletion apart.
"""

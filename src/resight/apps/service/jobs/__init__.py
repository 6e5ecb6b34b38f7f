"""Images that clients add or change over HTTP: the service first stores them durably, then adds them in batches.

    uploads ─▶ intake ─▶ store (202) … worker ─▶ Collection.add

`store` records the accepted jobs in SQLite (`database`), `worker` takes them from `job_queue` and carries them out,
`events` streams their progress, `maintenance` removes orphaned files and has the collection compacted (`compaction`).
`upload_ledger` decides which uploads may go, and keeps those that could not be added in quarantine. `write_lock` keeps
the adding of images and their deletion apart.
"""

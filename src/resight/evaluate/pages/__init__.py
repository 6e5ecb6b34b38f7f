"""What people look at: the self-contained page of a run or a report, its charts, pictures and maps."""

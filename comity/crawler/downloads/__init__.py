"""Pages are fetched by the client that fetches policy files: COMITY_DOWNLOAD_HANDLER."""

echo store

ttl=0

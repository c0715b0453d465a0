"""The HTTP interface: requests in, slates out, clicks back, each acknowledged when it is durable."""

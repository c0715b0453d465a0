"""The front door: tables, ids and clicks in, slates out."""

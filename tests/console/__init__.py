"""The console: its pages, its guards, and what a browser makes of them."""

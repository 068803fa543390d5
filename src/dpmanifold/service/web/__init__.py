"""The service over HTTP: pages for people, JSON for programs. Everything it knows it asks of a desk."""

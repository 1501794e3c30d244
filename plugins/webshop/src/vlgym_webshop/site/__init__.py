"""The shop's web site: pages, product pictures, and the HTTP server on the loopback interface."""

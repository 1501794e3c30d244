"""The shop's web site: pages, product pictures, and the HTTP server that serves them on the loopback interface."""

"""What the documentation is built with: pages made from the code and from notebooks, and links that fit the site."""

"""Tools for those who publish policies: what their files mean together, and what is wrong with them."""

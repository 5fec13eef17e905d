"""Values that answers are made of: decisions, reasons, rules, restrictions. Nothing here knows a format."""

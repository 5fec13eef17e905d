"""The values of an answer: decisions, reasons, rules and restrictions, independent of formats."""

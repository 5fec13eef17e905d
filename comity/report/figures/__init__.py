"""The main figures of a report, their limits, and their course over several reports."""

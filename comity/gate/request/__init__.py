"""Requests: their facts, sessions and referrals, and whether they may go out."""

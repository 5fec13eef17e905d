"""Requests: their facts, sessions and referrals, and the decision whether they may go out."""

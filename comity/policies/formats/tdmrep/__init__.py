"""TDMRep, the TDM Reservation Protocol."""

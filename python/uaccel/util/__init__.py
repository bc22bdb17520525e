"""What every stage may use and what knows no stage."""

"""`gatehouse squeue` and `gatehouse sacct`: what Slurm's own commands print, without asking the controller."""

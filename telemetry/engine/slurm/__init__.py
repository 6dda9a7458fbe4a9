"""What Slurm writes, read into one normal form: values, records, and one adapter per text format."""

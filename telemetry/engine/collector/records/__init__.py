"""Facts from the records of a sensor that a site has already: auditd, Tetragon, Falco."""

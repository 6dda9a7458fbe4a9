"""What `policies` announces."""

AUP_PUBLISHED = "aup.published"

#!/bin/sh
# Passes what a sensor says on to the collector: /usr/local/libexec/gatehouse-records, owned by root, mode 0750.
exec cat > /run/gatehouse/records

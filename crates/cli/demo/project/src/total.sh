#!/bin/sh
# Reads "quantity price" lines and prints their total in cents.
total=0
while read -r quantity price; do
    total=$((total + quantity * price))
done
echo "$total"

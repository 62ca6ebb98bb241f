user=$1
echo "hello ${#user}"

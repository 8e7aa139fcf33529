#!/bin/sh
# debian-packages.sh PACKAGE TEST: install PACKAGE if TEST fails, when root; otherwise say exactly what to do.
set -eu
package=$1
if sh -c "$2" >/dev/null 2>&1; then
    exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "crawlguide needs the Debian package $package. Install it with:  sudo apt-get install $package" >&2
    exit 1
fi
echo "installing the Debian package $package" >&2
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" >/dev/null

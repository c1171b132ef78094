# Makes a copy of this system, for scripts that install something on it: an overlay at
# $system, with /proc, /dev, an empty /tmp and /run, and the loopback interface. They run in
# name spaces of their own for mounts, network and processes; what they change is gone with
# these. It ends with 77 where no copy can be made.

say() { printf '== %s\n' "$1"; }
# fail also prints the file $log of the copy.
fail() {
	printf 'FAIL: %s\n' "$1"
	cat "$system$log" 2>/dev/null || true
	exit 1
}

system=$(mktemp -d)
mount -t tmpfs tmpfs "$system" || exit 77
mkdir "$system/changed" "$system/work" "$system/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$system/changed,workdir=$system/work" "$system/root" || exit 77
system=$system/root
mount -t proc proc "$system/proc"
mount -t tmpfs tmpfs "$system/tmp"
mount -t tmpfs tmpfs "$system/run"
[ -e "$system/dev/null" ] || mount --rbind /dev "$system/dev"
ip link set lo up

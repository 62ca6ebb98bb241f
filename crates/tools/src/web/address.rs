//! Which addresses may be reached: the public internet, and what the settings allow beyond it.

use futures_util::future::BoxFuture;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use url::Host;

/// Hosts and networks that may be reached although they are not public.
#[derive(Debug, Clone, Default)]
pub struct Allow {
    hosts: Vec<String>,
    nets: Vec<IpNet>,
}

impl Allow {
    /// Each entry is a host (`intranet.example`), an address (`127.0.0.1`) or a network in CIDR
    /// form (`10.0.0.0/8`). The error names the entry that is none of these.
    pub fn parse<S: AsRef<str>>(entries: impl IntoIterator<Item = S>) -> Result<Self, String> {
        let mut allow = Self::default();
        for entry in entries {
            allow.add(entry.as_ref().trim())?;
        }
        Ok(allow)
    }

    fn add(&mut self, entry: &str) -> Result<(), String> {
        if let Ok(net) = entry.parse::<IpNet>() {
            self.nets.push(net.trunc());
        } else if let Ok(address) = entry.parse::<IpAddr>() {
            self.nets.push(address.into());
        } else {
            match Host::parse(entry) {
                // A pattern would look as if it worked and match nothing.
                Ok(Host::Domain(name)) if !name.contains('*') => self.hosts.push(bare(&name)),
                Ok(Host::Ipv4(address)) => self.nets.push(IpAddr::V4(address).into()),
                Ok(Host::Ipv6(address)) => self.nets.push(IpAddr::V6(address).into()),
                _ => {
                    return Err(format!(
                        "`{entry}` is no host name, address or network (such as 10.0.0.0/8)"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether the address of this host may be connected to.
    pub(super) fn check(&self, host: &str, address: IpAddr) -> Result<(), Refused> {
        let Some(kind) = special(address) else {
            return Ok(());
        };
        let host = bare(host);
        if self.hosts.contains(&host) || self.nets.iter().any(|net| net.contains(&address)) {
            return Ok(());
        }
        Err(Refused {
            host,
            address,
            kind,
        })
    }
}

/// Names in DNS have no case, and a dot at their end changes nothing.
fn bare(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// An address that may not be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    host: String,
    address: IpAddr,
    kind: &'static str,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            host,
            address,
            kind,
        } = self;
        let reach = "out of reach unless the user's settings allow it";
        match *host == address.to_string() {
            true => write!(f, "{address} ({kind}) is {reach}"),
            false => write!(f, "{host} is at {address} ({kind}), {reach}"),
        }
    }
}

impl std::error::Error for Refused {}

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(a: u16, b: u16, length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), length)
}

const SPECIAL_V4: [(Ipv4Net, &str); 17] = [
    (v4(0, 0, 0, 0, 8), "unspecified"),
    (v4(10, 0, 0, 0, 8), "private"),
    (v4(100, 64, 0, 0, 10), "carrier's private"),
    (v4(127, 0, 0, 0, 8), "loopback"),
    // The link between a virtual machine at Azure and its host.
    (v4(168, 63, 129, 16, 32), "cloud provider's own"),
    (v4(169, 254, 0, 0, 16), "link-local"),
    (v4(172, 16, 0, 0, 12), "private"),
    (v4(192, 0, 0, 0, 24), "reserved"),
    (v4(192, 0, 2, 0, 24), "documentation"),
    (v4(192, 88, 99, 0, 24), "6to4 relay"),
    (v4(192, 168, 0, 0, 16), "private"),
    (v4(198, 18, 0, 0, 15), "benchmark"),
    (v4(198, 51, 100, 0, 24), "documentation"),
    (v4(203, 0, 113, 0, 24), "documentation"),
    (v4(224, 0, 0, 0, 4), "multicast"),
    (v4(255, 255, 255, 255, 32), "broadcast"),
    (v4(240, 0, 0, 0, 4), "reserved"),
];

/// Only 2000::/3 is given out to the public: whatever is outside it is refused by the last rows,
/// the rows before give the usual ones their names.
const SPECIAL_V6: [(Ipv6Net, &str); 13] = [
    (v6(0x2001, 0xdb8, 32), "documentation"),
    (v6(0x2001, 0, 23), "reserved"),
    (v6(0x2002, 0, 16), "6to4"),
    (v6(0x3fff, 0, 20), "documentation"),
    (v6(0x64, 0xff9b, 32), "NAT64"),
    (v6(0xfc00, 0, 7), "private"),
    (v6(0xfe80, 0, 10), "link-local"),
    (v6(0xfec0, 0, 10), "private"),
    (v6(0xff00, 0, 8), "multicast"),
    (v6(0, 0, 3), "reserved"),
    (v6(0x4000, 0, 2), "reserved"),
    (v6(0x8000, 0, 2), "reserved"),
    (v6(0xc000, 0, 2), "reserved"),
];

/// What is special about an address; nothing about a public one. Addresses that carry an IPv4
/// address inside are all special: what is reached through them depends on the network.
fn special(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => SPECIAL_V4
            .iter()
            .find(|(net, _)| net.contains(&address))
            .map(|(_, kind)| *kind),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Some("unspecified"),
        IpAddr::V6(Ipv6Addr::LOCALHOST) => Some("loopback"),
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => Some("IPv4-mapped"),
        IpAddr::V6(address) => SPECIAL_V6
            .iter()
            .find(|(net, _)| net.contains(&address))
            .map(|(_, kind)| *kind),
    }
}

/// Where names become addresses.
pub trait Lookup: Send + Sync + fmt::Debug {
    fn lookup(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The system's own resolver.
#[derive(Debug, Clone, Copy)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// The resolver that connections are made with. What it hands out was checked and is what is
/// connected to, so a name cannot mean one address in the check and another in the connection.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    pub(super) allow: Arc<Allow>,
    pub(super) lookup: Arc<dyn Lookup>,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = guard.lookup.lookup(host.clone()).await?;
            let mut refused = None;
            let mut open = Vec::new();
            for address in found {
                match guard.allow.check(&host, address) {
                    Ok(()) => open.push(SocketAddr::new(address, 0)),
                    Err(why) => refused = refused.or(Some(why)),
                }
            }
            match refused {
                Some(why) if open.is_empty() => Err(why.into()),
                _ => Ok(Box::new(open.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(address: &str) -> Option<&'static str> {
        special(address.parse().unwrap())
    }

    #[test]
    fn public_addresses_are_open() {
        for address in [
            "1.1.1.1",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "169.253.255.255",
            "192.0.1.1",
            "198.17.255.255",
            "198.20.0.1",
            "223.255.255.255",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00:1450::1",
            "3ffe::1",
        ] {
            assert_eq!(kind(address), None, "{address}");
        }
    }

    #[test]
    fn special_addresses_are_known_by_their_names() {
        for (address, want) in [
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "unspecified"),
            ("10.255.255.255", "private"),
            ("100.64.0.1", "carrier's private"),
            ("100.127.255.255", "carrier's private"),
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("168.63.129.16", "cloud provider's own"),
            ("169.254.169.254", "link-local"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.0.0.192", "reserved"),
            ("192.0.2.1", "documentation"),
            ("192.168.0.1", "private"),
            ("198.19.255.255", "benchmark"),
            ("198.51.100.7", "documentation"),
            ("203.0.113.7", "documentation"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "broadcast"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("::7f00:1", "reserved"),
            ("::ffff:1.1.1.1", "IPv4-mapped"),
            ("::ffff:127.0.0.1", "IPv4-mapped"),
            ("64:ff9b::7f00:1", "NAT64"),
            ("64:ff9b:1::a00:1", "NAT64"),
            ("100::1", "reserved"),
            ("2001::1", "reserved"),
            ("2001:1ff::1", "reserved"),
            ("2001:db8::1", "documentation"),
            ("2002:7f00:1::", "6to4"),
            ("3fff:fff::1", "documentation"),
            ("4000::1", "reserved"),
            ("5f00::1", "reserved"),
            ("9000::1", "reserved"),
            ("fbff::1", "reserved"),
            ("fd00::1", "private"),
            ("fe80::1", "link-local"),
            ("fec0::1", "private"),
            ("ff02::1", "multicast"),
        ] {
            assert_eq!(kind(address), Some(want), "{address}");
        }
    }

    #[test]
    fn settings_open_hosts_addresses_and_networks() {
        let entries = ["LOCALHOST.", "bücher.example", "10.1.2.3/8", "::1", "127.1"];
        let allow = Allow::parse(entries).unwrap();
        let check = |host: &str, address: &str| allow.check(host, address.parse().unwrap()).is_ok();
        assert!(check("localhost", "127.0.0.9"));
        assert!(check("xn--bcher-kva.example", "192.168.1.1"));
        assert!(check("any.example", "10.200.0.1"));
        assert!(check("any.example", "::1") && check("x", "127.0.0.1"));
        assert!(!check("any.example", "127.0.0.2"));
        assert!(!check("sub.localhost", "127.0.0.9"));
        assert!(!check("any.example", "::ffff:10.0.0.1"));
        for bad in ["*", "*.example", "http://x", "x:80", "10.0.0.0/33", ""] {
            let error = Allow::parse([bad]).unwrap_err();
            assert!(error.contains(&format!("`{bad}`")), "{error}");
        }
        let refused = Allow::default().check("10.0.0.1", "10.0.0.1".parse().unwrap());
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .starts_with("10.0.0.1 (private) is out of reach")
        );
    }
}

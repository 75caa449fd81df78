//! `NO_PROXY`, held against the API server's address. kube 5.0 holds it against the proxy's own, so that it has no effect there.

use std::net::IpAddr;

use http::Uri;

/// Whether `list` (`host,.domain,10.0.0.0/8,*`) says that this server is reached without a proxy.
pub(super) fn covers(list: &str, server: &Uri) -> bool {
    let Some(host) = server.host() else { return false };
    let host = host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    let port = server.port_u16();
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| entry == "*" || one(entry, &host, port))
}

fn one(entry: &str, host: &str, port: Option<u16>) -> bool {
    let entry = entry.to_ascii_lowercase();
    if let Ok(address) = host.parse::<IpAddr>() {
        if let Some((network, bits)) = entry.split_once('/') {
            return match (network.parse(), bits.parse()) {
                (Ok(network), Ok(bits)) => in_network(address, network, bits),
                _ => false,
            };
        }
        if let Ok(other) = entry.trim_matches(['[', ']']).parse::<IpAddr>() {
            return other == address;
        }
    }
    let (name, wanted) = match entry.rsplit_once(':') {
        Some((name, number)) if number.parse::<u16>().is_ok() && !name.contains(':') => (name, number.parse::<u16>().ok()),
        _ => (entry.as_str(), None),
    };
    if wanted.is_some() && wanted != port {
        return false;
    }
    // `.example.com` is for names below it, `example.com` for it and names below it, as Go reads them.
    match name.strip_prefix("*.").or_else(|| name.strip_prefix('.')) {
        Some(domain) => host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')),
        None => host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')),
    }
}

fn in_network(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) if bits <= 32 => bits == 0 || (a.to_bits() ^ b.to_bits()) >> (32 - bits) == 0,
        (IpAddr::V6(a), IpAddr::V6(b)) if bits <= 128 => bits == 0 || (a.to_bits() ^ b.to_bits()) >> (128 - bits) == 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("10.1.2.3,10.0.0.0/8", "https://10.1.2.3:6443", true)]
    #[case("10.0.0.0/8", "https://10.200.0.1", true)]
    #[case("10.0.0.0/8", "https://11.0.0.1", false)]
    #[case("10.0.0.0/99", "https://10.0.0.1", false)]
    #[case("0.0.0.0/0", "https://11.0.0.1", true)]
    #[case("::1", "https://[::1]:6443", true)]
    #[case("fd00::/8", "https://[fd12::1]:6443", true)]
    #[case("example.com", "https://api.example.com:6443", true)]
    #[case("example.com", "https://example.com", true)]
    #[case("example.com", "https://badexample.com", false)]
    #[case(".example.com", "https://example.com", false)]
    #[case(".example.com", "https://API.Example.com", true)]
    #[case("*.example.com", "https://api.example.com", true)]
    #[case("api.example.com:6443", "https://api.example.com:6443", true)]
    #[case("api.example.com:443", "https://api.example.com:6443", false)]
    #[case("*", "https://anything", true)]
    #[case(" , ", "https://anything", false)]
    #[case("", "https://anything", false)]
    fn lists(#[case] list: &str, #[case] server: &str, #[case] wanted: bool) {
        assert_eq!(covers(list, &server.parse().unwrap()), wanted);
    }
}

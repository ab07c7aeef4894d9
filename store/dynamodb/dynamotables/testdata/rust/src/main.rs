//! A dynamodb-lease client that does what it is told, a line at a time, and answers each line with one.
//!
//!     leasehold-neighbour URL TABLE TTL-SECONDS
//!
//!     acquire NAME   held | taken
//!     drop           dropped
//!     healthy        healthy | failed     is the lease still being extended?
//!
//! What it can't do is answered by "error: …". It crashes by being killed.
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use dynamodb_lease::{Client, Lease};
use std::error::Error;
use tokio::io::{AsyncBufReadExt, BufReader};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, url, table, ttl] = args.as_slice() else {
        return Err("want URL TABLE TTL-SECONDS".into());
    };
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .region(Region::new("us-east-1"))
        .endpoint_url(url)
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .build();
    let client = Client::builder()
        .table_name(table)
        .lease_ttl_seconds(ttl.parse()?)
        .build_and_check_db(aws_sdk_dynamodb::Client::from_conf(config))
        .await?;
    println!("ready");
    let mut held: Option<Lease> = None;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let answer = match line.split_once(' ') {
            Some(("acquire", name)) => match client.try_acquire(name).await {
                Ok(Some(lease)) => {
                    held = Some(lease);
                    "held".into()
                }
                Ok(None) => "taken".into(),
                Err(err) => format!("error: {err:#}"),
            },
            None if line == "drop" => match held.take() {
                Some(lease) => match lease.release().await {
                    Ok(()) => "dropped".into(),
                    Err(err) => format!("error: {err:#}"),
                },
                None => "error: nothing is held".into(),
            },
            None if line == "healthy" => match &held {
                Some(lease) if lease.is_healthy() => "healthy".into(),
                _ => "failed".into(),
            },
            _ => format!("error: {line:?} is no command"),
        };
        println!("{answer}");
    }
    Ok(())
}

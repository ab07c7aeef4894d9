# Runs a command, one node at a time: ruby section.rb NAME HOLDER CMD [ARG...]

require_relative 'libraries/leasehold'

name, holder, *command = ARGV
abort 'usage: ruby section.rb NAME HOLDER CMD [ARG...]' if command.empty?
begin
  ok = Leasehold::Client.new.with_lock(name, holder: holder, wait: 30) { system(*command) }
rescue Leasehold::Error, Leasehold::Unreachable => e
  abort e.message
end
exit(ok || 1)

# The calls that the Chef cookbook's library makes, with plain net/http. Argument: the server's port.
require 'json'
require 'net/http'

PORT = Integer(ARGV[0])

def strip(text)
  text.gsub(/\W|_/, '')
end

# acquire returns the lock's path, or the reason why there is none.
def acquire(name, title, wait: 5, lifetime: 300)
  body = JSON.generate('title' => strip(title), 'wait' => wait, 'lifetime' => lifetime)
  res = Net::HTTP.post(URI("http://127.0.0.1:#{PORT}/locks/#{strip(name)}"), body)
  case res.code
  when '201' then URI(res['Location']).path
  when '408' then :timeout
  when '409' then :deleted
  else raise "#{res.code}: #{res.body}"
  end
end

def show(path)
  res = Net::HTTP.get_response(URI("http://127.0.0.1:#{PORT}#{path}"))
  res.code == '404' ? nil : JSON.parse(res.body)
end

def release(path)
  res = Net::HTTP.start('127.0.0.1', PORT) { |http| http.delete(path) }
  raise 'lock not found' if res.code == '404'
  raise res.code unless res.code == '204'
end

def with_lock(name, title)
  path = acquire(name, title, wait: 60)
  raise "not locked: #{path}" if path.is_a?(Symbol)
  begin
    yield
  ensure
    release(path)
  end
end

def check(what)
  raise what unless yield
end

path = acquire('node_ids', 'web-1.example.com')
lock = show(path)
check("#{lock}") { lock['active'] && lock['title'] == 'web1examplecom' && lock['lifetime'] == 300 && lock['wait'] == 5 }
check('locked twice') { acquire('node_ids', 'web-2', wait: 0) == :timeout }
release(path)
check('still there') { show(path).nil? }
begin
  release(path)
  raise ArgumentError, 'released twice'
rescue RuntimeError => e
  check(e.message) { e.message == 'lock not found' }
end

# assign_identity, by many nodes at a time: each takes the first number that is free, under the lock.
taken = {}
(1..12).map do |n|
  Thread.new do
    with_lock('node_ids', "web-#{n}") do
      free = (1..254).find { |id| !taken.value?(id) } or raise 'No free ids'
      sleep 0.005
      taken["web-#{n}"] = free
    end
  end
end.each(&:join)
check("#{taken}") { taken.values.sort == (1..12).to_a }
puts 'ok'

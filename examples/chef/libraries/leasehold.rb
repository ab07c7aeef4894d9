# What a configuration-management run needs of a lock server, with nothing but Ruby's own library: a number of its own for each
# machine, and critical sections.

require 'erb'
require 'json'
require 'net/http'
require 'openssl'
require 'securerandom'

module Leasehold
  # Error is what the server answered instead: a problem, whose code stays the same.
  class Error < StandardError
    attr_reader :code, :problem

    def initialize(problem)
      @problem = problem
      @code = problem['code']
      super(problem['detail'] || "no answer of a lock server: #{problem}")
    end
  end

  # Unreachable says that there was no answer. A request may have been carried out all the same; each of these may be sent again.
  class Unreachable < StandardError; end

  # Client makes calls to a lock server.
  class Client
    RETRIED = [SystemCallError, IOError, Timeout::Error, SocketError, OpenSSL::SSL::SSLError, Net::ProtocolError].freeze
    PASSING = %w[store_unavailable auth_unavailable closing outcome_unknown too_many_requests].freeze

    # url is the server's; token that of a caller that its policy knows; ca_file has the authority of its certificate; patience is for how
    # many seconds a request is sent again while it gets no answer.
    def initialize(url: nil, token: nil, ca_file: nil, patience: 30)
      @url = URI((url || ENV['LEASEHOLD_URL'] || 'http://127.0.0.1:7070').chomp('/'))
      raise ArgumentError, "url #{url.inspect}: want one such as https://locks.example.com" unless @url.is_a?(URI::HTTP) && @url.host

      @token = token
      @ca_file = ca_file
      @patience = patience
    end

    # assign has a value of the pool assigned to the name "as", the same one each time: the answer's 'value'.
    def assign(pool, as:, **more)
      post("/v1/identities/#{escape(pool)}", { as: as }.merge(more.compact))
    end

    # identities returns who has which value of the pool: {name => value}. Nobody has one of a pool that isn't there.
    def identities(pool)
      all = call(:Get, "/v1/identities/#{escape(pool)}")['identities']
      all.to_h { |id| [id['as'] || id['holder'], id['value']] }
    rescue Error => e
      raise unless e.code == 'not_found'

      {}
    end

    # release gives back what the name "as" has, if it is that value. What is given back already is no error.
    def release(pool, value, as:)
      call(:Delete, "/v1/identities/#{escape(pool)}/#{escape(value)}?as=#{escape(as)}")
    rescue Error => e
      raise unless %w[not_current not_found].include?(e.code)
    end

    # with_lock holds a name while the block runs. It waits for so many seconds; a block that takes longer than the lifetime runs
    # without the lock from then on, and with_lock raises when it has ended: what must never run twice at a time sends the grant's
    # 'sequencer', which the block is given, with every request.
    def with_lock(name, holder:, wait: 5, lifetime: 300)
      path = "/v1/leases/#{escape(name)}"
      key = { 'Idempotency-Key' => SecureRandom.uuid } # the same when the request is sent again
      grant = post(path, { holder: holder, wait: wait, ttl: lifetime }, key, wait: wait)
      begin
        yield grant
      ensure
        call(:Delete, path, nil, { 'Leasehold-Sequencer' => grant['sequencer'], 'Leasehold-Secret' => grant['secret'] })
      end
    end

    private

    def escape(text)
      ERB::Util.url_encode(text.to_s)
    end

    def post(path, body, header = {}, wait: 0)
      call(:Post, path, JSON.generate(body), header.merge('Content-Type' => 'application/json'), wait: wait)
    end

    # call sends a request until it is answered.
    def call(method, path, body = nil, header = {}, wait: 0)
      deadline = now + @patience + wait
      begin
        once(method, path, body, header, wait)
      rescue *RETRIED, Unreachable => e
        raise Unreachable, "#{@url}: #{e.message}" if now > deadline

        sleep 0.5
        retry
      end
    end

    def once(method, path, body, header, wait)
      options = { use_ssl: @url.scheme == 'https', ca_file: @ca_file, open_timeout: 5, read_timeout: 10 + wait, max_retries: 0 }
      answer = Net::HTTP.start(@url.host, @url.port, options) do |http|
        request = Net::HTTP.const_get(method).new(@url.path + path, header)
        request['Authorization'] = "Bearer #{@token}" if @token
        request.body = body
        http.request(request)
      end
      text = answer.body.to_s.empty? ? {} : JSON.parse(answer.body)
      return text if answer.is_a?(Net::HTTPSuccess)
      raise Unreachable, text['detail'] if PASSING.include?(text['code'])

      raise Error, text
    rescue JSON::ParserError
      raise Error, { 'detail' => "#{@url}: #{answer.code}, and no answer of a lock server: #{answer.body.to_s[0, 100]}" }
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end

  # pool_of is the pool that belongs to an attribute. Its elements are escaped: ['a', 'bc'] and ['ab', 'c'] are two.
  def self.pool_of(attribute_path)
    attribute_path.map { |element| ERB::Util.url_encode(element) }.join('/')
  end

  # values_of returns what the values of a pool are, as the server is told: a range of integers, or the names of any others. The order of
  # the values doesn't matter.
  def self.values_of(range)
    values = range.to_a
    texts = values.map(&:to_s).sort
    raise ArgumentError, 'no values: want a range such as 1..254, or an array' if values.empty?
    raise ArgumentError, "#{texts.find { |text| texts.count(text) > 1 }.inspect} is in the values twice" if texts.uniq.size < texts.size

    return { names: texts } unless values.all?(Integer)

    low, high = values.minmax
    low >= 0 && high - low + 1 == values.size ? { range: "#{low}-#{high}" } : { names: texts }
  end

  # assign_identity gives the node one of the values that no other node has, writes it into the attribute, and returns it: a range such as 1..254,
  # or an array of integers or names. It is the same one at each run. A value that the node has already is kept, and made known to the server.
  def self.assign_identity(client, node, attribute_path, range)
    current = node.read(*attribute_path)
    values = values_of(range)
    answer = client.assign(pool_of(attribute_path), as: node.name, value: current&.to_s, **values)
    id = range.find { |value| value.to_s == answer['value'] } # of its own type
    node.write(:normal, *attribute_path, id) unless id == current
    id
  rescue Error => e
    raise "Identity range is exhausted: #{e.message}" if e.code == 'pool_exhausted'

    raise "#{node.name} has #{attribute_path.join('.')} #{current}, which can't be kept: #{e.message}" if current

    raise
  end

  # find_duplicate_identity returns the values that more than one node has, {value => [names]}: by what the nodes say that the block
  # returns, a search's, and by what the server knows. A value is as the nodes have it: 3, not '3'. With only_me it returns those of this
  # node only.
  def self.find_duplicate_identity(client, node, attribute_path, only_me: false)
    holders = Hash.new { |hash, text| hash[text] = [] }
    client.identities(pool_of(attribute_path)).each { |name, text| holders[text] << name }
    as_said = {} # by the server's form of it; of two holders of one value one is a node that says so
    (yield || []).each do |other|
      value = other.read(*attribute_path)
      next if value.nil?

      holders[value.to_s] << other.name
      as_said[value.to_s] ||= value
    end
    duplicates = holders.transform_values(&:uniq).select { |_, names| names.size > 1 }.transform_keys { |text| as_said.fetch(text, text) }
    only_me ? duplicates.select { |_, names| names.include?(node.name) } : duplicates
  end
end

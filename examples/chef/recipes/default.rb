# Gives this node a server id that no other node has, and refuses to go on if another node says that it has the same one.

attribute = %w[leasehold server_id]
leasehold = Leasehold::Client.new(url: node.read('leasehold', 'url'), token: node.read('leasehold', 'token'))

values = node.read('leasehold', 'values') || (1..(node.read('leasehold', 'max') || 254)) # an array of any values, or a range
Leasehold.assign_identity(leasehold, node, attribute, values)

twice = Leasehold.find_duplicate_identity(leasehold, node, attribute, only_me: true) { search(:node, 'leasehold_server_id:*') }
raise "more than one node has the same #{attribute.join('.')}: #{twice}" unless twice.empty?

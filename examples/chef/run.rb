# Runs the recipe for one node, where there is no Chef: ruby run.rb NODES NAME. NODES is a folder with a file for each node, NAME.json, in
# which its attributes are, as Chef's local mode keeps them.

require 'json'
require_relative 'libraries/leasehold'

# Node is a node, as far as the recipe needs one.
class Node
  attr_reader :name

  def initialize(folder, name)
    @path = File.join(folder, "#{name}.json")
    @name = name
    @data = File.exist?(@path) ? JSON.parse(File.read(@path)) : { 'name' => name, 'normal' => {} }
  end

  def read(*path)
    @data['normal'].dig(*path)
  end

  def write(level, *path, value)
    *above, last = path
    above.inject(@data[level.to_s]) { |hash, element| hash[element] ||= {} }[last] = value
  end

  def save
    File.write("#{@path}.new", JSON.pretty_generate(@data))
    File.rename("#{@path}.new", @path)
  end
end

# Run is one run of a recipe.
class Run
  attr_reader :node

  def initialize(folder, name)
    @folder = folder
    @node = Node.new(folder, name)
  end

  # search returns every node; the recipe looks at one attribute of each.
  def search(_type, _query)
    Dir.children(@folder).grep(/\.json\z/).sort.map { |file| Node.new(@folder, File.basename(file, '.json')) }
  end

  def converge(recipe)
    instance_eval(File.read(recipe), recipe)
    node.save
  end
end

abort 'usage: ruby run.rb NODES NAME' unless ARGV.size == 2
run = Run.new(*ARGV)
begin
  run.converge(File.join(__dir__, 'recipes', 'default.rb'))
rescue StandardError => e
  abort "#{run.node.name}: #{e.message}"
end
puts run.node.read('leasehold', 'server_id')

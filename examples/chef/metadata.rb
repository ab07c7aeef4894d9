name 'leasehold'
version '0.1.0'
chef_version '>= 14'

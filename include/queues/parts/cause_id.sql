left(encode(sha256(convert_to({cause}, 'UTF8')), 'hex'), 16)

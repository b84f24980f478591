"""Reads SentencePiece's ModelProto without protobuf: pieces, the model's type, the character map."""
import struct


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = data[at : at + 8], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            value, at = data[at : at + 4], at + 4
        yield number, value


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def read_sentencepiece(data):
    pieces, kind, charsmap, unk_id = [], 1, b"", 0
    for number, value in fields(data):
        if number == 1:
            piece = dict(fields(value))
            pieces.append((piece[1].decode(), struct.unpack("<f", piece.get(2, b"\0\0\0\0"))[0], piece.get(3, 1)))
            if pieces[-1][2] == 2:
                unk_id = len(pieces) - 1
        elif number == 2:
            kind = dict(fields(value)).get(3, 1)
        elif number == 3:
            charsmap = dict(fields(value)).get(2, b"")
    return {"pieces": pieces, "type": kind, "charsmap": charsmap, "unk_id": unk_id}

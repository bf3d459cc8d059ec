"""What a document says of a rank, defined a second time, from the page of definitions alone.

Slow and plain, with nothing of the product: `rows` reads an export, `steps`, `budget`, `producers`, `account`
and `walls` define, `drawn` draws small runs, `compare` holds the product's document against the definition.
"""

"""Tables as row blocks: NumPy arrays and data frames, read where they lie."""

from expost.tables.array import ArrayTable as ArrayTable
from expost.tables.base import Table as Table
from expost.tables.encoded import EncodedTable as EncodedTable
from expost.tables.frame import FrameTable as FrameTable
from expost.tables.open import open_table as open_table
